//! The order in which the instructions of a recorded program are assembled, for several vectors of
//! i, and who reads what when.
//!
//! A program speaks of one vector; an *instance* is a value for one vector, or for all of them
//! where it does not vary with i. Vectors are taken two by two, instruction by instruction, so that
//! the latency of one hides behind the other. Called by `assemble`.

use std::collections::VecDeque;

use tilework_simd::record::{NONE, Op, Value};

use super::program::{Leaf, Program};

/// A value for one vector: `value * vectors + vector`, with vector 0 for what all share.
pub(super) type Instance = usize;

/// What is done at one time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item {
    /// An instruction for a vector.
    Compute(Value, usize),
    /// A look whether some lane of a vector is a hit, by the number of the hit.
    Hit(usize, usize),
    /// The value of a vector that is written down.
    Store(Value, usize),
}

/// The order of all items, and the uses of all instances.
pub(super) struct Schedule {
    pub(super) items: Vec<Item>,
    /// Times at which each instance is read, ascending.
    pub(super) uses: Vec<VecDeque<usize>>,
    /// Whether a value is the same for all vectors.
    pub(super) shared: Vec<bool>,
    pub(super) vectors: usize,
    /// Computed instances that live at once, at most.
    pub(super) pressure: usize,
}

impl Schedule {
    pub(super) fn new(program: &Program, vectors: usize, together: usize) -> Schedule {
        let count = program.instructions.len();
        let mut shared: Vec<bool> = Vec::with_capacity(count);
        for instruction in &program.instructions {
            let own = match instruction.op {
                Op::Leaf(leaf) => {
                    matches!(
                        program.leaves[leaf as usize],
                        Leaf::Row(_) | Leaf::Number(_) | Leaf::Place
                    )
                }
                _ => instruction.args.iter().all(|&arg| arg == NONE || shared[arg as usize]),
            };
            shared.push(own);
        }
        let mut needed = vec![false; count];
        program.results().for_each(|value| needed[value as usize] = true);
        for k in (0..count).rev() {
            if needed[k] {
                let args = program.instructions[k].args;
                args.iter()
                    .filter(|&&arg| arg != NONE)
                    .for_each(|&arg| needed[arg as usize] = true);
            }
        }
        let mut schedule = Schedule {
            items: Vec::new(),
            uses: vec![VecDeque::new(); count * vectors],
            shared,
            vectors,
            pressure: 0,
        };
        for first in (0..vectors).step_by(together) {
            let group = first..vectors.min(first + together);
            for k in (0..count).filter(|&k| needed[k]) {
                if !matches!(program.instructions[k].op, Op::Bits(_) | Op::Leaf(_)) {
                    let own =
                        if schedule.shared[k] { 0..usize::from(first == 0) } else { group.clone() };
                    schedule.items.extend(own.map(|v| Item::Compute(k as Value, v)));
                }
                for (number, hit) in program.hits.iter().enumerate() {
                    if hit.mask as usize == k {
                        schedule.items.extend(group.clone().map(|v| Item::Hit(number, v)));
                    }
                }
                if let Some(stored) = program.stored.filter(|&stored| stored as usize == k) {
                    schedule.items.extend(group.clone().map(|v| Item::Store(stored, v)));
                }
            }
        }
        schedule.count_uses(program);
        schedule
    }

    /// The instance of a value for a vector.
    pub(super) fn instance(&self, value: Value, vector: usize) -> Instance {
        let vector = if self.shared[value as usize] { 0 } else { vector };
        value as usize * self.vectors + vector
    }

    fn count_uses(&mut self, program: &Program) {
        let end = self.items.len();
        for time in 0..end {
            let (read, vector): (Vec<Value>, usize) = match self.items[time] {
                Item::Compute(value, v) => {
                    let args = program.instructions[value as usize].args;
                    (args.into_iter().filter(|&arg| arg != NONE).collect(), v)
                }
                Item::Hit(hit, v) => (vec![program.hits[hit].mask, program.hits[hit].value], v),
                Item::Store(value, v) => (vec![value], v),
            };
            for value in read {
                let instance = self.instance(value, vector);
                if self.uses[instance].back() != Some(&time) {
                    self.uses[instance].push_back(time);
                }
            }
        }
        // What states become is read at the end of the row.
        for &value in &program.next {
            for vector in 0..self.vectors {
                let instance = self.instance(value, vector);
                self.uses[instance].push_back(end);
            }
        }
        let mut change = vec![0i64; end + 2];
        for time in 0..end {
            if let Item::Compute(value, vector) = self.items[time] {
                change[time] += 1;
                let last = self.uses[self.instance(value, vector)].back().copied().unwrap_or(time);
                change[last] -= 1;
            }
        }
        let mut live = 0;
        for step in change {
            live += step;
            self.pressure = self.pressure.max(live as usize);
        }
    }
}
