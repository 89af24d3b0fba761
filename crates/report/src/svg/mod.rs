//! The progress picture as SVG.
//!
//! Written by hand rather than by a plotting library: the picture follows the
//! reader's light or dark setting by style classes, tells its content to screen
//! readers, names each attempt in a tooltip and never changes its bytes for the
//! same view. `picture` puts it together, `frame` owns the geometry, the other
//! files draw one kind of thing each.

mod axes;
mod frame;
mod labels;
mod legend;
mod lines;
mod marks;
mod options;
mod picture;
mod style;
mod writer;

pub use options::{SvgOptions, Theme};
pub use picture::svg;
