# shellcheck shell=bash
# A tree of another Debian, in which scripts in tools/ work by chroot: sourced after lib.sh, never run. Who sources it sets
# `tree`, the folder of the tree. Needs root and, to make a tree, debootstrap and a network; MIRROR may name another mirror.

[ "$(id -u)" -eq 0 ] || die "a tree of another Debian needs root (chroot); run: sudo tools/${0##*/}"
command -v chroot >/dev/null || die "chroot is missing; install coreutils"

mirror() {
  local found=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)}
  [ -n "$found" ] || die "apt names no Debian mirror (apt-get update has not run?); set MIRROR=http://…/debian"
  echo "$found"
}

in_tree() {
  chroot "$tree" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

# Makes the tree, unless it is there. The mark is set last: a tree that was left half made is made anew.
#   make_tree SUITE
make_tree() {
  if [ -e "$tree/.complete" ]; then return; fi
  command -v debootstrap >/dev/null || die "debootstrap is missing; run: apt-get install debootstrap"
  local from
  from=$(mirror)
  echo "making a tree of Debian $1 in $tree"
  remove_tree
  mkdir -p "$tree"
  debootstrap --variant=minbase "$1" "$tree" "$from" >"$tree.log" 2>&1 ||
    { tail -n 5 "$tree.log" >&2; die "debootstrap failed: is $from reachable? The log is $tree.log"; }
  # Archived mirrors have release files past their date. Nothing of a tree is worth waiting for the disk.
  printf '%s\n' 'Acquire::Check-Valid-Until "false";' 'Dpkg::Use-Pty "false";' >"$tree/etc/apt/apt.conf.d/99-tree"
  echo force-unsafe-io >"$tree/etc/dpkg/dpkg.cfg.d/tree"
  cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
  cp -a /etc/apt/apt.conf.d/*proxy* "$tree/etc/apt/apt.conf.d/" 2>/dev/null || true
  touch "$tree/.complete"
}

# Mounts what programs expect, and with FOLDER that folder, read only, as /src; unmounts all when the script ends. What is
# unmounted below the tree's /dev must not go from the machine's own, hence the slaves.
#   mount_tree [FOLDER]
mount_tree() {
  unmount_tree
  trap unmount_tree EXIT
  mkdir -p "$tree/src"
  mount -t proc proc "$tree/proc" || die "cannot mount; a container needs the right to (CAP_SYS_ADMIN)"
  mount --rbind --make-rslave /dev "$tree/dev"
  if [ $# -eq 1 ]; then
    mount --bind "$1" "$tree/src"
    mount -o remount,bind,ro "$tree/src"
  fi
}

unmount_tree() {
  local place
  for place in src proc dev var/cache/apt/archives; do
    if mountpoint -q "$tree/$place"; then umount -l "$tree/$place"; fi
  done
}

# Whatever is still mounted goes first, or it would be removed, too.
remove_tree() {
  unmount_tree
  rm -rf --one-file-system "$tree"
}

# Installs packages in the tree from fresh package lists.
#   install_in_tree PACKAGE...
install_in_tree() {
  in_tree sh -c 'apt-get -qq update && apt-get -qq install --yes --no-install-recommends "$@"' sh "$@" >"$tree.log" 2>&1 ||
    { tail -n 5 "$tree.log" >&2; die "apt-get failed in $tree: is the network there? The log is $tree.log"; }
}
