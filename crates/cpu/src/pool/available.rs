//! How many CPUs this process may use: its affinity, and the quota of its control groups.
//!
//! Assumes nothing: whatever cannot be read does not limit. Called once by `pool.rs`.

/// The CPUs in the affinity mask, or as many as the quota of the control groups pays for (rounded
/// up) if these are fewer; at least 1.
pub(super) fn cpus() -> usize {
    let affinity = affinity()
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let quota = quota(&|path| std::fs::read_to_string(path).ok());
    affinity.min(quota.unwrap_or(usize::MAX)).max(1)
}

#[cfg(target_os = "linux")]
fn affinity() -> Option<usize> {
    // SAFETY: `cpu_set_t` is a plain array of bits; all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writes of the size that is given; 0 is the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    // SAFETY: only reads `set`.
    let count = unsafe { libc::CPU_COUNT(&set) };
    (failed == 0 && count > 0).then_some(count as usize)
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Option<usize> {
    None
}

/// The smallest quota of this process's control groups and of those around them, in CPUs. Reads
/// files through `read`.
fn quota(read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
    let groups = read("/proc/self/cgroup")?;
    let limits = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        if controllers.is_empty() {
            let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
            least(path, &roots, &|group| limit_v2(group, read))
        } else if controllers.split(',').any(|name| name == "cpu") {
            let own = format!("/sys/fs/cgroup/{controllers}");
            least(path, &["/sys/fs/cgroup/cpu", &own], &|group| limit_v1(group, read))
        } else {
            None
        }
    });
    limits.min()
}

/// The smallest limit of the group `path` and of those around it, under any of the roots. In a
/// container the path may be that of the host and not exist here: the root then stands for it.
fn least(path: &str, roots: &[&str], limit: &dyn Fn(&str) -> Option<usize>) -> Option<usize> {
    let depth = path.rmatch_indices('/').map(|(at, _)| &path[..at]);
    let groups: Vec<&str> = std::iter::once(path.trim_end_matches('/')).chain(depth).collect();
    let all =
        roots.iter().flat_map(|root| groups.iter().map(move |group| format!("{root}{group}")));
    all.filter_map(|group| limit(&group)).min()
}

/// `cpu.max` holds "quota period", or "max period".
fn limit_v2(group: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
    let text = read(&format!("{group}/cpu.max"))?;
    let (quota, period) = text.trim().split_once(' ')?;
    whole_cpus(quota, period)
}

/// Two files; a quota of -1 is none.
fn limit_v1(group: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
    let quota = read(&format!("{group}/cpu.cfs_quota_us"))?;
    let period = read(&format!("{group}/cpu.cfs_period_us"))?;
    whole_cpus(quota.trim(), period.trim())
}

fn whole_cpus(quota: &str, period: &str) -> Option<usize> {
    let (quota, period) = (quota.parse::<usize>().ok()?, period.parse::<usize>().ok()?);
    (period > 0).then(|| quota.div_ceil(period).max(1))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn quota_of(files: &[(&str, &str)]) -> Option<usize> {
        quota(&|path| {
            let file = files.iter().find(|file| file.0 == path);
            file.map(|file| file.1.to_owned())
        })
    }

    #[test]
    fn quotas() {
        assert_eq!(quota_of(&[]), None);
        let unified = ("/proc/self/cgroup", "0::/a/b\n");
        assert_eq!(quota_of(&[unified]), None);
        let top = ("/sys/fs/cgroup/cpu.max", "max 100000\n");
        let outer = ("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
        let inner = ("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
        assert_eq!(quota_of(&[unified, top]), None);
        assert_eq!(quota_of(&[unified, top, inner]), Some(4));
        assert_eq!(quota_of(&[unified, top, outer, inner]), Some(3));
        assert_eq!(quota_of(&[("/proc/self/cgroup", "0::/\n"), top, outer]), None);
        let in_container = ("/sys/fs/cgroup/cpu.max", "50000 100000\n");
        assert_eq!(quota_of(&[unified, in_container]), Some(1));

        let old = ("/proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/c\n0::/\n");
        let period = ("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
        let none = ("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "-1\n");
        let some = ("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "150000\n");
        assert_eq!(quota_of(&[old, period, none]), None);
        assert_eq!(quota_of(&[old, period, some]), Some(2));
    }

    #[test]
    fn this_machine() {
        assert!(cpus() >= 1);
    }
}
