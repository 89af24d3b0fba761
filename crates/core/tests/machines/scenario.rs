//! Scenarios: named scripts that are tests of their own and, all together, what transition coverage
//! is counted over.

use crate::support::Bench;

/// A scenario's name and its script.
pub type Scenario = (&'static str, fn() -> Bench);

/// Defines scenarios: each becomes a test that runs its script and verifies the history it left,
/// and an entry of the module's `ALL`.
macro_rules! scenarios {
    ($($(#[$doc:meta])* fn $name:ident() $body:block)*) => {
        $($(#[$doc])* fn $name() -> crate::support::Bench $body)*

        /// Every scenario of this module.
        pub const ALL: &[crate::scenario::Scenario] = &[$((stringify!($name), $name)),*];

        mod tests {
            $(
                #[test]
                fn $name() {
                    super::$name().verify();
                }
            )*
        }
    };
}
pub(crate) use scenarios;
