//! Refuses network file systems: SQLite's locks and shared memory don't reach over them (C1).

use std::path::Path;

/// Kinds, as the kernel's mount table spells them, whose files other machines may share.
const NETWORK: &[&str] = &[
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse.ceph-fuse",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "smb3",
    "smbfs",
    "virtiofs",
];

/// The kind of network file system that holds `path` (absolute, without links), going by the text
/// of `/proc/self/mountinfo`; `None` for a local one.
pub(crate) fn network_kind<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for line in mountinfo.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let Some(mount_point) = left.split(' ').nth(4) else { continue };
        let Some(kind) = right.split(' ').next() else { continue };
        let mount_point = unescape(mount_point);
        let depth = Path::new(&mount_point).components().count();
        // Of two mounts on one point the later one is on top.
        if path.starts_with(&mount_point) && best.is_none_or(|(deepest, _)| depth >= deepest) {
            best = Some((depth, kind));
        }
    }
    best.map(|(_, kind)| kind).filter(|kind| NETWORK.contains(kind))
}

/// The mount table writes blanks and backslashes as `\040` and the like.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [head, tail @ ..] = rest {
        let octal = (*head == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = octal {
            bytes.push(byte);
            rest = &tail[3..];
        } else {
            bytes.push(*head);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 22 0:35 / /srv rw shared:20 - nfs4 host:/srv rw,vers=4.2
41 40 254:2 / /srv/local rw - xfs /dev/vdb rw
42 22 0:36 / /mnt/with\\040blank rw - fuse.sshfs me@host: rw
43 22 254:3 / /twice rw - nfs host:/x rw
44 22 254:4 / /twice rw - ext4 /dev/vdc rw
";

    #[test]
    fn the_deepest_and_latest_mount_decides() {
        let kind = |path: &str| network_kind(MOUNTS, Path::new(path));
        assert_eq!(kind("/var/lib/dlock"), None);
        assert_eq!(kind("/srv/dlock"), Some("nfs4"));
        assert_eq!(kind("/srv/local/dlock"), None);
        assert_eq!(kind("/srvx"), None);
        assert_eq!(kind("/mnt/with blank/d"), Some("fuse.sshfs"));
        assert_eq!(kind("/twice/d"), None);
        assert_eq!(network_kind("nonsense\n", Path::new("/")), None);
    }
}
