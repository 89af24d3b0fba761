//! Acceptance cases of the experiment loop, from outside: one file per case, one test binary.

mod agent_commits;
mod guards;
mod hooks;
mod leftovers;
mod numbers;
mod record_overwritten;
mod referee;
mod target;
mod time_limit;
mod user_works_on;
mod which_number;

mod rig;
mod second_try;
mod secrets;
mod strangers;
