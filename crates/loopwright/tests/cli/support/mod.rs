//! What the tests share: a project in a folder of its own, the binary run with a cleared
//! environment and a git that knows no configuration but the project's, and texts made comparable.

mod normal;
mod rig;

pub use normal::normal;
pub use rig::{LOOP, Rig, send, spawn};
