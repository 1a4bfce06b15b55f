#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TIMEOUT: 120
# NVRTC is found in the toolkit's folder and in Python's packages where the loader does not know it,
# and clang alone is found where there is none. In a mount namespace that hides what is installed.
set -eu

tests=$BULKHEAD_BUILD_DIR/tests
work=$BULKHEAD_TEST_TMP

probe() {
    "$tests/compile-source" probe_tells_of_all_three
}

if [ "${1-}" = inside ]; then
    # What is installed, elsewhere; then nothing is where it was.
    mkdir -p "$work/home/lib64" "$work/venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib"
    mount --bind "$2" "$work/home/lib64"
    mount --bind "$2" "$work/venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib"
    mount --bind /dev/null /etc/ld.so.cache
    mount -t tmpfs none "$3"
    unset CUDA_HOME CUDA_PATH VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH
    export HOME="$work"

    probe | grep -q "^1 0 .*no libnvrtc.so" || { echo "NVRTC is found though hidden:"; probe; exit 1; }
    for place in CUDA_HOME="$work/home" CUDA_PATH="$work/home" VIRTUAL_ENV="$work/venv"; do
        env "$place" "$tests/compile-source" probe_tells_of_all_three | grep -q "^1 1 $work" ||
            { echo "NVRTC is not found through $place"; exit 1; }
        env "$place" "$tests/compile-source" a_kernel_compiles_and_runs_nvrtc
        env "$place" "$tests/compile-source" everyday_headers_are_there_nvrtc
    done
    exit 0
fi

library=$(probe | sed -n 's/^1 1 \([^ ]*\) .*/\1/p')
if [ -z "$library" ]; then
    echo "skip: NVRTC is not installed"
    exit 77
fi
case $library in
/usr/local/cuda*) root=$(echo "$library" | cut -d/ -f1-4) ;;
*)
    echo "skip: NVRTC is at $library, which cannot be hidden"
    exit 77
    ;;
esac
if ! unshare -rm true 2>/dev/null; then
    echo "skip: no mount namespace is available"
    exit 77
fi
exec unshare -rm sh "$0" inside "$(dirname "$library")" "$root"
