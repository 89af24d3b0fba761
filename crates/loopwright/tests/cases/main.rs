//! Acceptance cases of the experiment loop, from outside: one file per case, one test binary.

#[path = "../common/mod.rs"]
mod common;

mod adopt_stopped;
mod agent_commits;
mod agent_in_place;
mod agent_repository;
mod disk_full;
mod guards;
mod harmful_objects;
mod hooks;
mod host_faults;
mod in_place;
mod in_place_closed;
mod in_place_commit;
mod in_place_found;
mod killers;
mod leftovers;
mod next_invocation;
mod numbers;
mod odd_names;
mod odd_repositories;
mod own_commits;
mod record_overwritten;
mod referee;
mod target;
mod time_limit;
mod two_starts;
mod user_works_on;
mod which_number;

mod rig;
mod second_try;
mod secrets;
mod setups;
mod small_loop;
mod strange_files;
mod strangers;
mod users;
