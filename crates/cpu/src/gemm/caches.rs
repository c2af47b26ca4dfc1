//! The sizes of the data caches, from the system or from the CPU itself.
//!
//! Read once per process; `blocking` takes them as numbers and touches no machine.

use tilework_fork::ForkOnce;

/// Data caches of one core (the last one possibly shared), in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSizes {
    /// First level.
    pub l1: usize,
    /// Second level.
    pub l2: usize,
    /// Last level.
    pub l3: usize,
}

impl CacheSizes {
    /// What is assumed where the system does not say: the smallest caches of the last ten years.
    pub const FALLBACK: CacheSizes = CacheSizes { l1: 32 << 10, l2: 256 << 10, l3: 4 << 20 };

    /// The caches of this machine, read once.
    pub fn of_this_machine() -> CacheSizes {
        static SIZES: ForkOnce<CacheSizes> = ForkOnce::new();
        *SIZES.get_or_make(|| {
            let from_system = |level| Self::from_sysfs(level).or_else(|| Self::from_cpuid(level));
            CacheSizes {
                l1: from_system(1).unwrap_or(Self::FALLBACK.l1),
                l2: from_system(2).unwrap_or(Self::FALLBACK.l2),
                l3: from_system(3).unwrap_or(Self::FALLBACK.l3),
            }
        })
    }

    fn from_sysfs(level: u32) -> Option<usize> {
        (0..8).find_map(|index| {
            let read = |name: &str| {
                let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
                std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
            };
            let holds_data = read("type")? != "Instruction";
            if !holds_data || read("level")?.parse() != Ok(level) {
                return None;
            }
            Self::parse_size(&read("size")?)
        })
    }

    /// `48K`, `2M` or a plain number of bytes.
    fn parse_size(text: &str) -> Option<usize> {
        let (digits, unit) = match text.strip_suffix('K') {
            Some(digits) => (digits, 1 << 10),
            None => match text.strip_suffix('M') {
                Some(digits) => (digits, 1 << 20),
                None => (text, 1),
            },
        };
        digits.parse::<usize>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
    }

    #[cfg(target_arch = "x86_64")]
    fn from_cpuid(level: u32) -> Option<usize> {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        if __cpuid(0).eax < 4 {
            return None;
        }
        (0..8).find_map(|index| {
            let leaf = __cpuid_count(4, index);
            // Bits 0 to 4 are the kind (1 data, 3 unified), 5 to 7 the level.
            if !matches!(leaf.eax & 0x1f, 1 | 3) || (leaf.eax >> 5) & 7 != level {
                return None;
            }
            let ways = (leaf.ebx >> 22) as usize + 1;
            let parts = (leaf.ebx >> 12) as usize % 1024 + 1;
            let line = leaf.ebx as usize % 4096 + 1;
            Some(ways * parts * line * (leaf.ecx as usize + 1))
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn from_cpuid(_level: u32) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_are_read() {
        assert_eq!(CacheSizes::parse_size("48K"), Some(48 << 10));
        assert_eq!(CacheSizes::parse_size("2M"), Some(2 << 20));
        assert_eq!(CacheSizes::parse_size("nonsense"), None);
        let here = CacheSizes::of_this_machine();
        assert!(here.l1 >= 4 << 10 && here.l2 >= here.l1);
    }
}
