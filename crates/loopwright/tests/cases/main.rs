//! Acceptance cases of the experiment loop, from outside: one file per case, one test binary.

mod agent_commits;
mod guards;
mod hooks;
mod in_place;
mod in_place_commit;
mod leftovers;
mod numbers;
mod record_overwritten;
mod referee;
mod target;
mod time_limit;
mod two_starts;
mod user_works_on;
mod which_number;

mod rig;
