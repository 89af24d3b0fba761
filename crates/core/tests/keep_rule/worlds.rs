//! How often the rule errs, in worlds of noise.
