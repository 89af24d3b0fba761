//! Places labels beside points so that they stay apart and inside the picture.
//!
//! Greedy, most important label first: for each one a list of nearby places is
//! tried, places that would touch another label, a mark or the edge are out, and
//! of the rest the one with the least ink under it wins. A label without a place
//! is tried again shorter, then left out (the caller says how many were).

use crate::text::{cut_pixels, pixels};

/// A rectangle in picture coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    pub(crate) fn around(x: f64, y: f64, radius: f64) -> Self {
        Self {
            left: x - radius,
            top: y - radius,
            right: x + radius,
            bottom: y + radius,
        }
    }

    pub(crate) fn touches(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn inside(&self, outer: &Self) -> bool {
        self.left >= outer.left
            && self.right <= outer.right
            && self.top >= outer.top
            && self.bottom <= outer.bottom
    }
}

/// A label that wants a place beside its point.
pub(crate) struct Wish {
    pub x: f64,
    pub y: f64,
    pub text: String,
}

/// A placed label; `x` is its left edge, `y` its baseline.
pub(crate) struct Placed {
    pub text: String,
    pub x: f64,
    pub y: f64,
    pub area: Area,
    /// From the point to the label, where it stands further off.
    pub leader: Option<[f64; 4]>,
}

/// Counts how much is drawn where, in coarse cells.
pub(crate) struct Ink {
    cell: f64,
    columns: usize,
    rows: usize,
    amounts: Vec<f32>,
    origin: (f64, f64),
}

impl Ink {
    pub(crate) fn new(outer: &Area) -> Self {
        let cell = 5.0;
        let columns = ((outer.right - outer.left) / cell).ceil().max(1.0) as usize;
        let rows = ((outer.bottom - outer.top) / cell).ceil().max(1.0) as usize;
        Self {
            cell,
            columns,
            rows,
            amounts: vec![0.0; columns * rows],
            origin: (outer.left, outer.top),
        }
    }

    pub(crate) fn dot(&mut self, x: f64, y: f64, amount: f32) {
        let (column, row) = self.cell_of(x, y);
        let at = row * self.columns + column;
        self.amounts[at] = (self.amounts[at] + amount).min(4.0);
    }

    /// A horizontal or vertical stroke.
    pub(crate) fn stroke(&mut self, from: (f64, f64), to: (f64, f64), amount: f32) {
        let (first, last) = (self.cell_of(from.0, from.1), self.cell_of(to.0, to.1));
        for row in first.1.min(last.1)..=first.1.max(last.1) {
            for column in first.0.min(last.0)..=first.0.max(last.0) {
                let at = row * self.columns + column;
                self.amounts[at] = (self.amounts[at] + amount).min(4.0);
            }
        }
    }

    fn under(&self, area: &Area) -> f64 {
        let (first, last) = (
            self.cell_of(area.left, area.top),
            self.cell_of(area.right, area.bottom),
        );
        let mut total = 0.0;
        for row in first.1..=last.1 {
            let cells = &self.amounts[row * self.columns + first.0..=row * self.columns + last.0];
            total += f64::from(cells.iter().sum::<f32>());
        }
        total
    }

    /// What lies between a point's mark and its label: a line there would part them.
    fn between(&self, wish: &Wish, area: &Area) -> f64 {
        let x = wish.x.clamp(area.left, area.right);
        let y = wish.y.clamp(area.top, area.bottom);
        let length = (x - wish.x).hypot(y - wish.y);
        let steps = (length / self.cell) as usize;
        (2..steps)
            .map(|step| {
                let share = step as f64 / steps as f64;
                let (column, row) =
                    self.cell_of(wish.x + (x - wish.x) * share, wish.y + (y - wish.y) * share);
                f64::from(self.amounts[row * self.columns + column])
            })
            .sum()
    }

    fn cell_of(&self, x: f64, y: f64) -> (usize, usize) {
        let column = ((x - self.origin.0) / self.cell).max(0.0) as usize;
        let row = ((y - self.origin.1) / self.cell).max(0.0) as usize;
        (column.min(self.columns - 1), row.min(self.rows - 1))
    }
}

/// What labels have to keep clear of.
pub(crate) struct Ground<'a> {
    pub outer: Area,
    pub blocked: Vec<Area>,
    pub ink: &'a Ink,
    pub font_size: f64,
    /// Whether the free side is below the points (lower is better) or above.
    pub prefer_below: bool,
}

/// Longest label in pixels per pixel of font size.
const LONGEST_EM: f64 = 25.0;

/// Places as many of the wishes as find room, in the order given.
pub(crate) fn place_labels(wishes: &[Wish], ground: &Ground<'_>) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::new();
    for wish in wishes {
        let whole = cut_pixels(&wish.text, LONGEST_EM * ground.font_size, ground.font_size);
        let short = cut_pixels(&wish.text, 8.0 * ground.font_size, ground.font_size);
        let found = best_place(wish, &whole, ground, &placed).or_else(|| {
            (short != whole)
                .then(|| best_place(wish, &short, ground, &placed))
                .flatten()
        });
        placed.extend(found);
    }
    placed
}

fn best_place(wish: &Wish, text: &str, ground: &Ground<'_>, placed: &[Placed]) -> Option<Placed> {
    if text.is_empty() {
        return None;
    }
    let width = pixels(text, ground.font_size);
    let mut best: Option<(f64, Placed)> = None;
    for (dx, dy, cost) in offsets(width, ground) {
        let area = Area {
            left: wish.x + dx,
            top: wish.y + dy - ground.font_size * 0.5 - 1.0,
            right: wish.x + dx + width,
            bottom: wish.y + dy + ground.font_size * 0.5 + 1.0,
        };
        let free = area.inside(&ground.outer)
            && !ground.blocked.iter().any(|other| area.touches(other))
            && !placed.iter().any(|other| area.touches(&other.area));
        if !free {
            continue;
        }
        let leader = leader(wish, &area, dy);
        let crossing = leader.is_some_and(|line| crosses_any(line, placed))
            || placed
                .iter()
                .any(|p| p.leader.is_some_and(|line| touches_box(line, &area)));
        let cost = cost
            + ground.ink.under(&area) * 1.5
            + ground.ink.between(wish, &area) * 6.0
            + if crossing { 60.0 } else { 0.0 };
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            let label = Placed {
                text: text.to_owned(),
                x: area.left,
                y: wish.y + dy + ground.font_size * 0.35,
                area,
                leader,
            };
            best = Some((cost, label));
        }
    }
    best.map(|(_, label)| label)
}

/// Places to try, relative to the point (left edge and middle of the text), with their costs.
fn offsets(width: f64, ground: &Ground<'_>) -> Vec<(f64, f64, f64)> {
    let size = ground.font_size;
    let towards = if ground.prefer_below { 1.0 } else { -1.0 };
    let mut all = vec![(size * 0.8, 0.0, 6.0), (-width - size * 0.8, 0.0, 8.0)];
    for step in 0..12 {
        let distance = size * (1.15 + f64::from(step) * 0.75);
        let far = f64::from(step) * 5.0;
        for (side, cost) in [(towards, 0.0), (-towards, 5.0)] {
            let dy = side * distance;
            all.push((-width - size * 0.1, dy, cost + far));
            all.push((size * 0.1, dy, cost + far + 1.0));
            all.push((-width * 0.5, dy, cost + far + 3.0));
            all.push((size * 1.6, dy, cost + far + 6.0));
            all.push((-width - size * 1.6, dy, cost + far + 6.0));
        }
    }
    all
}

/// A line from the point to the nearest place of the label, if it isn't right beside it.
fn leader(wish: &Wish, area: &Area, dy: f64) -> Option<[f64; 4]> {
    let height = area.bottom - area.top;
    if dy.abs() < height * 1.3 {
        return None;
    }
    let x = wish
        .x
        .clamp(area.left + 3.0, (area.right - 3.0).max(area.left + 3.0));
    let y = if dy > 0.0 { area.top } else { area.bottom };
    let length = (x - wish.x).hypot(y - wish.y);
    // Starts at the rim of the mark, not in its middle.
    let share = 7.0 / length.max(7.0);
    let from = (wish.x + (x - wish.x) * share, wish.y + (y - wish.y) * share);
    Some([from.0, from.1, x, y])
}

fn crosses_any(line: [f64; 4], placed: &[Placed]) -> bool {
    placed.iter().any(|label| touches_box(line, &label.area))
}

/// Whether a line passes through a rectangle, found by walking along it.
fn touches_box(line: [f64; 4], area: &Area) -> bool {
    (0..=16).any(|at| {
        let share = f64::from(at) / 16.0;
        let x = line[0] + (line[2] - line[0]) * share;
        let y = line[1] + (line[3] - line[1]) * share;
        x > area.left && x < area.right && y > area.top && y < area.bottom
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_crowd_stay_apart_and_inside() {
        let outer = Area {
            left: 0.0,
            top: 0.0,
            right: 400.0,
            bottom: 200.0,
        };
        let wishes: Vec<Wish> = (0..60)
            .map(|at| Wish {
                x: 200.0 + f64::from(at % 8) * 20.0,
                y: 100.0 + f64::from(at % 5) * 10.0,
                text: format!("label number {at} which is rather long"),
            })
            .collect();
        let ink = Ink::new(&outer);
        let blocked: Vec<Area> = wishes.iter().map(|w| Area::around(w.x, w.y, 5.0)).collect();
        let ground = Ground {
            outer,
            blocked: blocked.clone(),
            ink: &ink,
            font_size: 11.0,
            prefer_below: true,
        };
        let placed = place_labels(&wishes, &ground);
        assert!(placed.len() >= 8, "{}", placed.len());
        for (at, label) in placed.iter().enumerate() {
            assert!(label.area.inside(&outer));
            assert!(!blocked.iter().any(|b| b.touches(&label.area)));
            assert!(!placed[..at].iter().any(|p| p.area.touches(&label.area)));
        }
    }
}
