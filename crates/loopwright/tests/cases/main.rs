//! Acceptance cases of the experiment loop, from outside: one file per case, one test binary.

mod agent_commits;
mod guards;
mod leftovers;
mod numbers;
mod referee;
mod target;
mod time_limit;
mod which_number;

mod rig;
