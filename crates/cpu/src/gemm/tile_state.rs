//! The state of the tile unit (AMX): whether there is one for this process, and how its registers
//! are shaped while a thread uses it. Called by `tiles`.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use tilework_fork::ForkOnce;

/// Shapes this thread's tile registers; what they held is lost.
///
/// # Safety
/// [`available`] says so.
#[inline(always)]
pub(super) unsafe fn configure() {
    // SAFETY: the instruction exists and is permitted.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, readonly)) };
}

/// Gives the tile registers back, so that the kernel need not save them at every switch.
///
/// # Safety
/// As [`configure`].
#[inline(always)]
pub(super) unsafe fn release() {
    // SAFETY: as above.
    unsafe { asm!("tilerelease", options(nostack, nomem)) };
}

/// How the eight tile registers are shaped: 16 rows of 64 bytes each.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// All eight registers whole; edges are zeros in the panels.
static CONFIG: TileConfig = {
    let mut config = TileConfig {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [0; 16],
        rows: [0; 16],
    };
    let mut tile = 0;
    while tile < 8 {
        config.row_bytes[tile] = 64;
        config.rows[tile] = 16;
        tile += 1;
    }
    config
};

/// Whether this CPU has the tile unit and the kernel lets this process use it; asked once.
pub(super) fn available() -> bool {
    static AVAILABLE: ForkOnce<bool> = ForkOnce::new();
    *AVAILABLE.get_or_make(|| {
        if __cpuid(0).eax < 7 {
            return false;
        }
        // Bits 22 and 24: bfloat16 tiles, tiles.
        let wanted = 1 << 22 | 1 << 24;
        __cpuid_count(7, 0).edx & wanted == wanted && permitted()
    })
}

/// Asks Linux for the tile registers, which are too large to be saved for every process.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: this request takes no pointers and changes only what threads of this process may do.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}
