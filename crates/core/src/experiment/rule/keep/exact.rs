//! Floats in a state, written as their shortest decimal texts, so that the very same ones come back.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use crate::metric::Real;

/// What can be written so.
pub(super) trait Exact: Sized {
    /// Its form in a record.
    type Written: Serialize + for<'de> Deserialize<'de>;

    /// To that form; none where it isn't finite.
    fn write(&self) -> Option<Self::Written>;

    /// From that form.
    fn read(written: Self::Written) -> Self;
}

impl Exact for f64 {
    type Written = Real;

    fn write(&self) -> Option<Real> {
        Real::new(*self).ok()
    }

    fn read(written: Real) -> Self {
        written.get()
    }
}

impl Exact for Option<f64> {
    type Written = Option<Real>;

    fn write(&self) -> Option<Option<Real>> {
        self.map_or(Some(None), |number| number.write().map(Some))
    }

    fn read(written: Option<Real>) -> Self {
        written.map(Real::get)
    }
}

impl Exact for [f64; 3] {
    type Written = [Real; 3];

    fn write(&self) -> Option<[Real; 3]> {
        let [first, second, third] = self;
        Some([first.write()?, second.write()?, third.write()?])
    }

    fn read(written: [Real; 3]) -> Self {
        written.map(Real::get)
    }
}

pub(super) fn serialize<T: Exact, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    let written = value.write();
    let written =
        written.ok_or_else(|| ser::Error::custom("a number of the rule is not finite"))?;
    written.serialize(to)
}

pub(super) fn deserialize<'de, T: Exact, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::Written::deserialize(from)
        .map(T::read)
        .map_err(de::Error::custom)
}
