# shellcheck shell=bash
# Shared by the scripts in tools/: sourced, never run. Sets the shell's options and goes to the root of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# Prints a command as one would type it, then runs it with the program's real path.
#   show_and_run PROGRAM_PATH ARGUMENT...
show_and_run() {
  local program=$1
  shift
  printf '\n$ %s' "${program##*/}"
  printf ' %q' "$@"
  printf '\n'
  "$program" "$@"
}

# Runs a command with its output in a log: one line that grows on a terminal, the whole log when the command fails.
#   quietly LABEL LOG COMMAND...
quietly() {
  local label=$1 log=$2 start=$SECONDS
  shift 2
  mkdir -p "$(dirname "$log")"
  printf '%s ...' "$label"
  if "$@" 2>&1 | tee "$log" | follow "$label"; then
    printf ' done in %d s\n' $((SECONDS - start))
    return
  fi
  printf ' failed\n'
  cat "$log" >&2
  die "$label failed; the output is above and in $log"
}

# Shows the last "[12/345]" of a Ninja build, on a terminal only.
follow() {
  local line
  while IFS= read -r line; do
    if [ -t 1 ] && [[ $line =~ ^\[[0-9]+/[0-9]+\] ]]; then
      printf '\r\033[K%s ... %s' "$1" "${BASH_REMATCH[0]}"
    fi
  done
  if [ -t 1 ]; then printf '\r\033[K%s ...' "$1"; fi
}

# What the address sanitizer is to pass over where LibTorch is in the program, which is not built with it: what it leaks at its
# end and where it refuses a file, and the vectors that it hands over.
asan_with_torch=detect_container_overflow=0:detect_leaks=0

# How many compilers run at once: one per core, and 3 GiB of free memory for each, which several LibTorch files at a time take.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 3145728)}' /proc/meminfo)
  echo $((memory < 1 ? 1 : memory < cores ? memory : cores))
}

#   build PRESET [-DVARIABLE=VALUE]... TARGET...
build() {
  local preset=$1 settings=()
  shift
  while [[ $1 == -D* ]]; do
    settings+=("$1")
    shift
  done
  quietly "configure $preset" "build/$preset.configure.log" cmake --preset "$preset" "${settings[@]}"
  quietly "build $preset" "build/$preset.build.log" cmake --build --preset "$preset" -j "$(jobs)" --target "$@"
}

# The C++ files that the formatter looks after.
cxx_files() {
  find . \( -path ./build -o -path ./install -o -path ./.git \) -prune -o \( -name '*.h' -o -name '*.cc' \) -printf '%P\n'
}

# The one formatter version whose output is the project's; empty when it is not installed.
clang_format() {
  command -v clang-format-14 || true
}
