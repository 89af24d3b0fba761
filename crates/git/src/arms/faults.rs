//! Named steps at which a test may stop the work, as if the process had been killed there.

use std::fmt;

use crate::arms::error::ArmsError;

/// Asked at every step; `true` stops the work there.
pub type StopAt = Box<dyn FnMut(&'static str) -> bool + Send>;

/// The hook, if a test set one.
#[derive(Default)]
pub(crate) struct Faults(Option<StopAt>);

impl Faults {
    pub(crate) fn set(&mut self, stop_at: Option<StopAt>) {
        self.0 = stop_at;
    }

    /// Called between any two changes on the disk that a crash could part.
    pub(crate) fn reach(&mut self, step: &'static str) -> Result<(), ArmsError> {
        if self.0.as_mut().is_some_and(|stop_at| stop_at(step)) {
            return Err(ArmsError::Stopped(step));
        }
        Ok(())
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Faults")
            .field(&self.0.is_some())
            .finish()
    }
}
