//! Which sub-grids a launch is cut into: parts of a row, whole rows or whole planes, in ascending order.

/// A box of blocks whose numbers follow one another: a part of a row, rows of one plane, or planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubGrid {
    pub first: [u32; 3],
    pub extent: [u32; 3],
}

impl SubGrid {
    pub fn blocks(&self) -> u64 {
        self.extent.iter().map(|&n| u64::from(n)).product()
    }
}

/// The sub-grids of a grid, each of at most `blocks` blocks: they cover the grid exactly once, in order.
#[derive(Clone, Debug)]
pub struct Plan {
    grid: [u64; 3],
    blocks: u64,
    next: u64,
}

impl Plan {
    /// Extents and `blocks` of 0 count as 1: no launch has them.
    pub fn new(grid: [u32; 3], blocks: u64) -> Plan {
        Plan {
            grid: grid.map(|n| u64::from(n.max(1))),
            blocks: blocks.max(1),
            next: 0,
        }
    }

    /// The same from block number `next` on.
    pub fn from(self, next: u64) -> Plan {
        Plan { next, ..self }
    }

    /// Blocks of the whole grid. At most 2^31 x 2^16 x 2^16 on any device, far below u64.
    pub fn total(&self) -> u64 {
        self.grid.iter().fold(1, |total, &n| total.saturating_mul(n))
    }
}

impl Iterator for Plan {
    type Item = SubGrid;

    fn next(&mut self) -> Option<SubGrid> {
        if self.next >= self.total() {
            return None;
        }
        let [width, height, depth] = self.grid;
        let row = self.next / width;
        let (x, y, z) = (self.next % width, row % height, row / height);
        let plane = width.saturating_mul(height);
        let extent = if x == 0 && y == 0 && self.blocks >= plane {
            [width, height, (self.blocks / plane).min(depth - z)]
        } else if x == 0 && self.blocks >= width {
            [width, (self.blocks / width).min(height - y), 1]
        } else {
            [self.blocks.min(width - x), 1, 1]
        };
        self.next += extent[0] * extent[1] * extent[2];
        Some(SubGrid {
            first: [x, y, z].map(|n| n as u32),
            extent: extent.map(|n| n as u32),
        })
    }
}
