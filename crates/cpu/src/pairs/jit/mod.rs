//! The inner loop of a formula as machine code: recorded, assembled, kept.
//!
//! [`compiled`] gives the code for a plan and a fold, or the reason why there is none, in which case
//! the interpreter of `tile` does the work with the same bits. `program` records the pair section,
//! `fold` the fold, `assemble` makes the code of a loop over the j of a block for a few vectors of
//! i, `page` holds it. `TILEWORK_JIT=0` switches all of it off. Called by `pairs::piece`.

mod assemble;
mod encode;
mod fold;
mod meaning;
mod page;
mod program;
mod schedule;
mod target;
mod twice;

use std::sync::Arc;

use tilework_fork::{ForkCache, ForkOnce};
use tilework_ops::DType;
use tilework_simd::Elem;
use tilework_simd::record::Op;
use tilework_tape::SlotId;

use super::plan::Plan;
use super::products;
use crate::isa::Isa;
pub(super) use fold::Folding;
use page::Page;
use program::{Leaf, Program};
use schedule::Schedule;
use target::Target;

/// What assembled code is called with. The code reads all of it, and writes the hits' end and how
/// many j are left.
#[repr(C)]
pub(super) struct Arguments {
    /// The tile of i, at the first that is meant.
    pub(super) lanes: *const u8,
    /// The block of j, at the first that is meant.
    pub(super) row: *const u8,
    /// What is the same for all pairs.
    pub(super) numbers: *const u8,
    /// What is given for every pair, at the first row and lane; and bytes from row to row.
    pub(super) given: *const u8,
    pub(super) given_step: usize,
    /// How many j, or vectors of j; afterwards how many are left, because there was no room for more
    /// hits.
    pub(super) count: usize,
    /// The place of the first in its range.
    pub(super) place: u64,
    /// Rows of the states, at the first lane.
    pub(super) states: *const *mut u8,
    /// Where the next hit goes, and the last place from which a row of hits has room. Or where the
    /// next row of numbers goes, if the program writes down one for every pair.
    pub(super) hit: *mut u8,
    pub(super) last_hit: *mut u8,
}

/// Hits that are written down before they are looked at.
pub(super) const HITS: usize = 64;

/// Bytes from hit to hit.
pub(super) const HIT_BYTES: usize = 128;

/// Where the note of a hit is, after its values: which lanes (32 bits), which component and vector
/// (32 bits), and how many j were left (64 bits).
pub(super) const HIT_NOTE: usize = 64;

/// Vectors of i in a loop, at most.
const VECTORS: usize = 4;

/// Instructions of one vector beyond which the code would leave the cache of instructions.
const LONGEST: usize = 2048;

/// The code of a program, for each number of vectors that somebody asked for.
#[derive(Debug)]
pub(super) struct Compiled {
    program: Program,
    target: Target,
    /// Vectors of a loop that make best use of the registers.
    vectors: usize,
    pages: [ForkOnce<Option<Page>>; VECTORS],
    /// The loop over two j at a time for one vector, where that is best.
    twice: Option<Page>,
}

/// What programs are kept by, which is all that a plan depends on beside M and N: the tape, whether
/// products are fused with the fold, which one goes onto a number; whether numbers are written down
/// for a product of matrices, whether lanes are j, whether exponentials are normal; and the fold.
type Key = (Vec<u8>, bool, Option<SlotId>, [bool; 3], Folding, Isa);

/// Code, or why there is none.
pub(super) type Outcome = Result<Arc<Compiled>, String>;

static COMPILED: ForkCache<Key, Outcome> = ForkCache::new(256);

/// The code for a plan and a fold, or why there is none.
pub(super) fn compiled(plan: &Plan<'_>, folding: Folding, isa: Isa) -> Outcome {
    static OFF: ForkOnce<bool> = ForkOnce::new();
    if *OFF.get_or_make(|| std::env::var("TILEWORK_JIT").is_ok_and(|value| value == "0")) {
        return Err("TILEWORK_JIT=0".to_owned());
    }
    let Plan { fuses, onto, .. } = *plan;
    let kind = [plan.columns.is_some(), plan.spread > 1, plan.normal];
    let mut tape = Vec::new();
    plan.tape.sign(&mut tape);
    let key = (tape, fuses, onto, kind, folding, isa);
    if let Some(known) = COMPILED.get(&key) {
        return known;
    }
    let made = compile(plan, folding, isa).map(Arc::new);
    COMPILED.insert(key, made.clone());
    made
}

fn compile(plan: &Plan<'_>, folding: Folding, isa: Isa) -> Result<Compiled, String> {
    if isa == Isa::Scalar || cfg!(not(all(target_arch = "x86_64", unix))) {
        return Err(format!("{} has no assembler", isa.name()));
    }
    let elem = if folding.dtype == DType::Float64 { Elem::F64 } else { Elem::F32 };
    let target = Target { wide: isa == Isa::Avx512, elem };
    let program = program::record(plan, folding, target.wide)?;
    if program.instructions.len() > LONGEST {
        return Err(format!("{} instructions a pair are too many", program.instructions.len()));
    }
    if program.hits.len() * VECTORS > HITS / 2 {
        return Err(format!("{} components with several best are too many", program.hits.len()));
    }
    let vectors = match program.stored {
        Some(_) => products::VECTORS,
        None => best_vectors(&program, target),
    };
    let step = target.row_step(program.across);
    let twice = match vectors {
        1 => twice::twice(&program, step).filter(|twice| fits_whole(twice, target, 1)),
        _ => None,
    };
    let twice = twice.and_then(|twice| assembled(&twice, target, 1));
    let compiled = Compiled { program, target, vectors, pages: Default::default(), twice };
    match compiled.page(vectors) {
        Some(_) => Ok(compiled),
        None => Err("too many masks live at once, or no executable memory".to_owned()),
    }
}

/// Vectors of i that a loop may have, best first: an odd one would be alone with its latency.
const CHOICES: [usize; 3] = [4, 2, 1];

/// Constants that may be read from memory without being felt.
const FROM_MEMORY: usize = 2;

/// As many vectors as leave registers for all that lasts; else for states and variables of i; else
/// for states. Constants in registers are worth more than another vector: with the numbers of j,
/// they would take all that the ports of loads can give.
fn best_vectors(program: &Program, target: Target) -> usize {
    let lasting = Lasting::of(program);
    let all = lasting.states + lasting.of_i;
    let fits = |each: usize, vectors: usize| needs(program, each, 0, vectors) <= target.registers();
    CHOICES
        .into_iter()
        .find(|&vectors| fits_whole(program, target, vectors))
        .or_else(|| CHOICES[..2].iter().copied().find(|&vectors| fits(all, vectors)))
        .unwrap_or_else(|| if fits(lasting.states, 2) { 2 } else { 1 })
}

/// Whether there are registers for all that lasts, but for a few constants.
fn fits_whole(program: &Program, target: Target, vectors: usize) -> bool {
    let Lasting { states, of_i, constants } = Lasting::of(program);
    let constants = constants.saturating_sub(FROM_MEMORY);
    needs(program, states + of_i, constants, vectors) <= target.registers()
}

/// Registers that a loop takes in which each vector has some and all share some.
fn needs(program: &Program, each: usize, shared: usize, vectors: usize) -> usize {
    let places = program.leaves.iter().filter(|leaf| **leaf == Leaf::Place).count();
    let temporary = Schedule::new(program, vectors, together(vectors)).pressure + 3;
    each * vectors + shared + temporary + places
}

/// How many values of a program last for a whole loop: for each vector, and for all of them.
struct Lasting {
    states: usize,
    of_i: usize,
    constants: usize,
}

impl Lasting {
    fn of(program: &Program) -> Lasting {
        let count = |wanted: fn(&Leaf) -> bool| program.leaves.iter().filter(|l| wanted(l)).count();
        let bits = program.instructions.iter().filter(|i| matches!(i.op, Op::Bits(_))).count();
        Lasting {
            states: count(|leaf| matches!(leaf, Leaf::State(_) | Leaf::Fixed(_))),
            of_i: count(|leaf| matches!(leaf, Leaf::Lanes(_))),
            constants: bits + count(|leaf| matches!(leaf, Leaf::Number(_))),
        }
    }
}

/// The loop of a program for this many vectors, as code that can be run.
fn assembled(program: &Program, target: Target, vectors: usize) -> Option<Page> {
    let (bytes, entry) = assemble::assemble(program, target, vectors, together(vectors))
        .or_else(|| assemble::assemble(program, target, vectors, 1))?;
    Page::new(&bytes, entry)
}

/// Vectors whose instructions alternate.
fn together(vectors: usize) -> usize {
    vectors.min(2)
}

impl Compiled {
    /// Vectors of i that a call takes, at most.
    pub(super) fn vectors(&self) -> usize {
        self.vectors
    }

    /// Lanes of a vector.
    pub(super) fn lanes(&self) -> usize {
        self.target.lanes()
    }

    /// Hits that one row may add.
    pub(super) fn hits(&self) -> usize {
        self.program.hits.len() * VECTORS
    }

    /// Instructions for one pair, and vectors that are taken together: for `explain`.
    pub(super) fn describe(&self) -> String {
        let runs = |op: Op| !matches!(op, Op::Bits(_) | Op::Leaf(_));
        let count = self.program.instructions.iter().filter(|i| runs(i.op)).count();
        let (lanes, j) = (self.lanes(), if self.twice.is_some() { ", 2 j at a time" } else { "" });
        format!("{count} instructions for {lanes} pairs, {} vectors a loop{j}", self.vectors)
    }

    fn page(&self, vectors: usize) -> Option<&Page> {
        let made = || assembled(&self.program, self.target, vectors);
        self.pages[vectors - 1].get_or_make(made).as_ref()
    }

    /// Whether there is code for this many vectors.
    pub(super) fn is_ready(&self, vectors: usize) -> bool {
        self.page(vectors).is_some()
    }

    /// Runs the loop for this many vectors, for which there is code.
    ///
    /// # Safety
    /// The regions have room for all vectors from the first lane on, the block for `count` rows,
    /// and the states' rows are those of the fold that this was compiled for.
    pub(super) unsafe fn run(&self, vectors: usize, arguments: &mut Arguments) {
        if let (1, Some(twice)) = (vectors, &self.twice) {
            let (all, odd) = (arguments.count, arguments.count % 2);
            arguments.count -= odd;
            if arguments.count > 0 {
                // SAFETY: the caller's promise, for the rows before the last if that is odd.
                unsafe { call(twice, arguments) };
                let done = (all - odd) * self.target.row_step(self.program.across);
                arguments.row = arguments.row.wrapping_add(done);
            }
            arguments.count = odd;
        }
        match self.page(vectors) {
            // SAFETY: the caller's promise.
            Some(page) if arguments.count > 0 => unsafe { call(page, arguments) },
            _ => arguments.count = 0,
        }
    }
}

/// Calls code.
///
/// # Safety
/// The arguments are what the code was compiled for, with rows to be taken.
unsafe fn call(page: &Page, arguments: &mut Arguments) {
    // SAFETY: the page holds a function of this type, which the assembler made for this process's
    // instruction set.
    let function: unsafe extern "sysv64" fn(*mut Arguments) =
        unsafe { std::mem::transmute(page.entry()) };
    // SAFETY: the caller's promise.
    unsafe { function(arguments) };
}
