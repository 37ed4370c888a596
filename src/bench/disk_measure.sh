#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `husk bench disk` runs: in each guest, which reads it from its disk, and on the host. It
# prints what fio and bonnie++ print for machines, and when which measurement began and ended
# (disk_output_private.h).
# usage: sh disk_measure.sh DISK DIRECTORY SIZE_MIB SECONDS
#   DISK       a block device, where a file system is to be made for DIRECTORY; or a file
#   DIRECTORY  where bonnie++ makes its files; what is left of them is the caller's to remove
#   SIZE_MIB   how much of the disk fio uses, and the size of bonnie++'s files
#   SECONDS    how long each of fio's jobs runs
set -u
disk=$1
directory=$2
size_mib=$3
seconds=$4

fail() {
    echo "husk-bench failed: $*"
    exit 1
}

# A guest has to go past its own page cache, or its disk is not measured; the host's page cache is
# what serves disks.
if [ -b "$disk" ]; then
    direct=1
else
    direct=0
fi

# fio leaves files where it runs.
work=$directory/fio
mkdir "$work" || fail "no directory for fio"
output=/proc/$$/fd/1

# job NAME LINE...
# The bench takes the time of a processor when it hears a mark, so what follows is put off a little.
job() {
    echo "[$1]"
    echo "exec_prerun=(echo husk-bench begin $1 >$output && sleep 0.2)"
    echo "exec_postrun=(echo husk-bench end $1 >$output && sleep 0.2)"
    shift
    printf '%s\n' "$@"
}

{
    cat <<END
[global]
filename=$disk
size=${size_mib}m
ioengine=libaio
direct=$direct
invalidate=0
runtime=$seconds
time_based
thread
stonewall
END
    job sequential-read rw=read bs=1m
    job sequential-write rw=write bs=1m
    job random-read-1 rw=randread bs=4k
    job random-read-32 rw=randread bs=4k iodepth=32
    job random-write-1 rw=randwrite bs=4k
    job random-write-32 rw=randwrite bs=4k iodepth=32
    job fsync rw=randwrite bs=4k fdatasync=1
} >"$work/jobs" || fail "no room for fio's jobs"

(cd "$work" && fio --output-format=terse --terse-version=3 jobs) || fail "fio"
rm -r "$work"

if [ -b "$disk" ]; then
    # Not discarded: the blocks are there already, and stay. The tables are small, so that none
    # is left to be made later.
    mkfs.ext4 -q -F -N 128 -J size=8 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$disk" ||
        fail "mkfs.ext4"
    mount -t ext4 "$disk" "$directory" || fail "mount"
fi

# By itself bonnie++ insists on twice as much as there is memory.
set -- -q -d "$directory" -s "$size_mib:8k" -r "$((size_mib / 2))" -n 0 -f -m husk-bench
[ "$(id -u)" -ne 0 ] || set -- "$@" -u root
echo "husk-bench begin bonnie"
bonnie++ "$@" 2>"$directory/table" || fail "bonnie++: $(cat "$directory/table")"
echo "husk-bench end bonnie"
[ ! -b "$disk" ] || umount "$directory"
echo "husk-bench done"
