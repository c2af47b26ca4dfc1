//! Where the values of a program are while it is assembled: registers, memory, the stack; and the
//! bytes of what is assembled.
//!
//! A value that no longer has a register and is nowhere in memory goes to the stack, the one that is
//! needed last before others. Called by the other parts of `assemble`.

use iced_x86::{Code, Instruction as Machine, MemoryOperand, Register};
use tilework_simd::record::{Op, Value};

use super::{Assembler, GIVEN, LANES, NUMBERS, ROW, Source, broadcast, memory};
use crate::pairs::jit::program::Leaf;
use crate::pairs::jit::schedule::Instance;
use crate::pairs::jit::target::Target;

impl Assembler<'_> {
    /// Whether a result may have the register of a state: it is what the state becomes, and
    /// nobody reads the state any more.
    pub(super) fn becomes(&self, state: Instance, result: Instance) -> bool {
        self.state_of(result) == Some(state)
    }

    /// The state whose register a result may take now.
    pub(super) fn state_of(&self, result: Instance) -> Option<Instance> {
        let (vectors, program) = (self.schedule.vectors, self.program);
        let (value, vector) = (result / vectors, result % vectors);
        let number_in = |of: &[Value]| of.iter().position(|&of| of as usize == value);
        let leaf = |number: usize| {
            let is_state = |op: Op| match op {
                Op::Leaf(leaf) => program.leaves[leaf as usize] == Leaf::State(number as u32),
                _ => false,
            };
            program.instructions.iter().position(|i| is_state(i.op)).map(|state| state as Value)
        };
        let state = match (number_in(&program.next), &program.between) {
            (Some(number), Some(between)) => between[number],
            (Some(number), None) => leaf(number)?,
            (None, between) => leaf(number_in(between.as_ref()?)?)?,
        };
        let state = self.schedule.instance(state, vector);
        let last = self.schedule.uses[state].back().copied().unwrap_or(0);
        (last <= self.time).then_some(state)
    }

    /// A register for a result, after the operands have been read.
    pub(super) fn define(&mut self, result: Instance, args: &[Instance]) -> Option<Register> {
        self.release(args);
        let register = match self.state_of(result).and_then(|state| self.place[state]) {
            Some(register) => register,
            None => self.fresh()?,
        };
        self.hold(result, register);
        Some(self.vector(register))
    }

    /// As [`Assembler::define`], for a result that is being made in a register that was fresh.
    pub(super) fn settle(
        &mut self,
        result: Instance,
        args: &[Instance],
        made: usize,
    ) -> Option<Register> {
        self.release(args);
        self.hold(result, made);
        Some(self.vector(made))
    }

    /// The result takes the register of an operand that ends.
    pub(super) fn takes_over(
        &mut self,
        result: Instance,
        operand: Instance,
        args: &[Instance],
    ) -> Option<()> {
        let register = self.place[operand]?;
        self.release(args);
        self.hold(result, register);
        Some(())
    }

    pub(super) fn hold(&mut self, result: Instance, register: usize) {
        self.held[register] = Some(result);
        self.place[result] = Some(register);
    }

    /// Operands have been read: registers of those that nobody reads any more are free.
    pub(super) fn release(&mut self, args: &[Instance]) {
        for &arg in args {
            let uses = &self.schedule.uses[arg];
            let over = uses.back().is_none_or(|&last| last <= self.time);
            if let (true, Some(register)) = (over, self.place[arg])
                && !self.pinned[register]
                && self.held[register] == Some(arg)
            {
                self.held[register] = None;
                self.place[arg] = None;
            }
            if over {
                self.mask_held
                    .iter_mut()
                    .filter(|held| **held == Some(arg))
                    .for_each(|held| *held = None);
            }
        }
        self.locked.clear();
    }

    /// The register that an instance is in, after loading it if need be.
    pub(super) fn register(&mut self, instance: Instance) -> Option<usize> {
        let register = match self.place[instance] {
            Some(register) => register,
            None => {
                let register = self.fresh()?;
                self.load_home(instance, register)?;
                self.hold(instance, register);
                register
            }
        };
        self.locked.push(register);
        Some(register)
    }

    /// An operand that may be in memory.
    pub(super) fn source(&mut self, instance: Instance) -> Option<Source> {
        if self.place[instance].is_none()
            && let Some((memory, whole)) = self.home(instance)
            && (whole || self.target.wide)
        {
            return Some(Source::At(memory));
        }
        let register = self.register(instance)?;
        Some(Source::In(self.vector(register)))
    }

    /// A register that is free, or made so.
    pub(super) fn fresh(&mut self) -> Option<usize> {
        if let Some(free) = self.held.iter().position(Option::is_none) {
            self.locked.push(free);
            return Some(free);
        }
        let next_use = |register: usize| {
            let instance = self.held[register]?;
            let uses = &self.schedule.uses[instance];
            let next = uses.iter().find(|&&time| time >= self.time).copied().unwrap_or(usize::MAX);
            // What is in memory anyway goes first.
            Some((self.home(instance).is_some(), next))
        };
        let movable = |register: &usize| !self.pinned[*register] && !self.locked.contains(register);
        let register = (0..self.held.len()).filter(movable).max_by_key(|&r| next_use(r))?;
        let instance = self.held[register]?;
        if self.home(instance).is_none() {
            let (slot, from) = (self.slot(instance), self.vector(register));
            self.push(Machine::with2(self.target.store(), slot, from).ok()?)?;
        }
        self.place[instance] = None;
        self.held[register] = None;
        self.locked.push(register);
        Some(register)
    }

    /// Where an instance can be read from memory, and whether a whole register lies there or one
    /// number for all lanes.
    pub(super) fn home(&self, instance: Instance) -> Option<(MemoryOperand, bool)> {
        let (value, vector) = (instance / self.schedule.vectors, instance % self.schedule.vectors);
        let instruction = &self.program.instructions[value];
        let own = vector * self.target.bytes();
        let (wide, across) = (self.target.wide, self.program.across);
        let leaf = match instruction.op {
            Op::Bits(bits) => {
                let at = self.constants[&(instruction.elem, bits)];
                return Some((self.pooled(at), !wide));
            }
            Op::Leaf(leaf) => Some(self.program.leaves[leaf as usize]),
            _ => None,
        };
        match leaf {
            Some(Leaf::Lanes(offset)) if across => {
                let at = offset as usize + vector * self.target.size();
                Some((broadcast(LANES, at, wide), false))
            }
            Some(Leaf::Row(offset)) if across => Some((memory(ROW, offset as usize), true)),
            Some(Leaf::Lanes(offset)) => Some((memory(LANES, offset as usize + own), true)),
            Some(Leaf::Given(offset)) => Some((memory(GIVEN, offset as usize + own), true)),
            Some(Leaf::Row(offset)) => Some((broadcast(ROW, offset as usize, wide), false)),
            Some(Leaf::Number(offset)) => Some((broadcast(NUMBERS, offset as usize, wide), false)),
            _ => self.slots[instance].map(|slot| (memory(Register::RSP, slot), true)),
        }
    }

    /// A constant of the pool, which begins at address 0 while encoding.
    pub(super) fn pooled(&self, at: usize) -> MemoryOperand {
        broadcast(Register::RIP, at, self.target.wide)
    }

    /// Loads what is in memory.
    pub(super) fn load_home(&mut self, instance: Instance, register: usize) -> Option<()> {
        let (from, whole) = self.home(instance)?;
        let elem = self.program.instructions[instance / self.schedule.vectors].elem;
        let target = Target { elem, ..self.target };
        let to = self.vector(register);
        let code = if whole { target.load() } else { target.broadcast() };
        // A load of one number is no broadcast of an operand.
        let plain = MemoryOperand { is_broadcast: false, ..from };
        self.push(Machine::with2(code, to, plain).ok()?)
    }

    pub(super) fn slot(&mut self, instance: Instance) -> MemoryOperand {
        let bytes = self.target.bytes();
        let frame = &mut self.frame;
        let slot = *self.slots[instance].get_or_insert_with(|| {
            *frame += bytes;
            *frame - bytes
        });
        memory(Register::RSP, slot)
    }

    pub(super) fn mask_of(&mut self, instance: Instance) -> Option<Register> {
        let k = self.mask_held.iter().position(|held| *held == Some(instance))?;
        Some(Register::K0 + k as u32)
    }

    pub(super) fn define_mask(&mut self, result: Instance, args: &[Instance]) -> Option<Register> {
        self.release(args);
        // k0 means no mask.
        let k = (1..8).find(|&k| self.mask_held[k].is_none())?;
        self.mask_held[k] = Some(result);
        Some(Register::K0 + k as u32)
    }

    pub(super) fn vector(&self, register: usize) -> Register {
        let first = if self.target.wide { Register::ZMM0 } else { Register::YMM0 };
        first + register as u32
    }

    /// The register for instructions that are several.
    pub(super) fn scratch(&self) -> Register {
        self.vector(self.held.len())
    }

    // Bytes.

    pub(super) fn push(&mut self, instruction: Machine) -> Option<()> {
        self.encoder.encode(&instruction, (self.entry + self.code.len()) as u64).ok()?;
        let mut bytes = self.encoder.take_buffer();
        self.code.append(&mut bytes);
        Some(())
    }

    /// So many bytes that do nothing, in few instructions.
    pub(super) fn fill(&mut self, bytes: usize) -> Option<()> {
        /// `nop [rax + rax + 0]`.
        const LONG: [u8; 8] = [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
        for _ in 0..bytes / LONG.len() {
            self.code.extend(LONG);
        }
        (0..bytes % LONG.len()).try_for_each(|_| self.push(Machine::with(Code::Nopd)))
    }

    pub(super) fn read(&mut self, to: Register, base: Register, offset: usize) -> Option<()> {
        self.push(Machine::with2(Code::Mov_r64_rm64, to, memory(base, offset)).ok()?)
    }

    /// A jump to be landed; where its distance is.
    pub(super) fn jump(&mut self, code: Code) -> Option<usize> {
        self.push(Machine::with_branch(code, (self.entry + self.code.len()) as u64).ok()?)?;
        Some(self.code.len() - 4)
    }

    pub(super) fn land(&mut self, jump: usize, at: usize) {
        let distance = (at as i64 - (jump as i64 + 4)) as i32;
        self.code[jump..jump + 4].copy_from_slice(&distance.to_le_bytes());
    }
}
