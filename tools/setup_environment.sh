#!/usr/bin/env bash
# Makes .venv fit for use, whatever state it is in, and says nothing where it is already so.
#
#     tools/setup_environment.sh                 make or mend .venv
#     tools/setup_environment.sh --find-python   print the Python that .venv would be made from
#
# PYTHON names the interpreter; without it the first that runs and is new enough is taken.
#
# Two files in .venv say how far an earlier run came:
#     .place  written once the bare environment stands; holds the folder it was made for,
#             because the commands in .venv/bin name that folder and fail in any other
#     .ready  written last; holds the fingerprint of all that was installed
#
# Written for bash 3.2, the newest that macOS has.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$(pwd -P)
venv=$root/.venv
venv_python=$venv/bin/python
inputs=(requirements.txt constraints.txt pyproject.toml)

# Settings for another environment would send the packages elsewhere.
unset PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX

say() { printf '%s\n' "$*"; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

# The Makefile puts .venv/bin first on PATH, but .venv must not be made from itself.
path_without_venv() {
    local entry result=
    local IFS=:
    for entry in $PATH; do
        [ "$entry" -ef "$venv/bin" ] || result=${result:+$result:}$entry
    done
    printf '%s' "$result"
}
PATH=$(path_without_venv)

# Run rather than looked up: a pyenv shim exists for versions that are not installed.
is_new_enough() {
    "$1" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Debian ships Python without the part that puts pip into a new environment.
can_make_venv() {
    "$1" -I -c 'import ensurepip, venv' >/dev/null 2>&1
}

find_python() {
    local candidate without_pip=
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" ||
            fail "PYTHON=$PYTHON does not run, or is older than Python 3.11."
        printf '%s' "$PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        if is_new_enough "$candidate"; then
            if can_make_venv "$candidate"; then
                printf '%s' "$candidate"
                return
            fi
            without_pip=${without_pip:-$candidate}
        fi
    done
    [ -n "$without_pip" ] ||
        fail "Python 3.11 or newer is needed and none was found: install one, or name it with PYTHON=/path/to/python3."
    printf '%s' "$without_pip"
}

add_venv_module() {
    local python=$1 package
    package=$("$python" -I -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if ! command -v apt-get >/dev/null; then
        fail "$python cannot make virtual environments (it lacks ensurepip): install its venv module, or name another with PYTHON=/path/to/python3."
    elif [ "$(id -u)" != 0 ]; then
        fail "$python cannot make virtual environments: run 'sudo apt-get install $package', then try again."
    fi
    say "$python cannot make virtual environments: installing $package with apt-get…"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq "$package"; } >/dev/null </dev/null || true
    can_make_venv "$python" ||
        fail "$python still cannot make virtual environments: install $package, or name another Python with PYTHON=/path/to/python3."
}

# Computed by the environment's own Python, so that asking also shows that it runs.
fingerprint() {
    "$venv_python" -I -S -c '
import hashlib, sys
digest = hashlib.sha256()
for name in sys.argv[2:]:
    with open(name, "rb") as file:
        content = file.read()
    digest.update(b"%s %d " % (name.encode(), len(content)) + content)
print("Python", sys.version.split()[0], "in", sys.argv[1])
print(digest.hexdigest())
' "$venv" "${inputs[@]}" 2>/dev/null
}

minor_version() {
    "$1" -I -c 'import sys; print(sys.version_info[:2])' 2>/dev/null || true
}

is_of_wanted_python() {
    [ -z "${PYTHON:-}" ] || [ "$(minor_version "$PYTHON")" = "$(minor_version "$venv_python")" ]
}

is_ready() {
    local now
    [ -f "$venv/.ready" ] && is_of_wanted_python &&
        now=$(fingerprint) && [ "$now" = "$(cat "$venv/.ready")" ]
}

# What is wrong with the bare environment, or nothing: only then can pip mend the rest.
venv_fault() {
    if [ ! -e "$venv/.place" ]; then
        say "was not finished"
    elif [ "$(cat "$venv/.place")" != "$venv" ]; then
        say "was made for another folder"
    elif ! "$venv_python" -I -c '' >/dev/null 2>&1; then
        say "has no Python that runs"
    elif ! is_new_enough "$venv_python"; then
        say "has a Python older than 3.11"
    elif ! "$venv_python" -I -m pip --version >/dev/null 2>&1; then
        say "has no pip that runs"
    elif ! is_of_wanted_python; then
        say "was made from another Python than $PYTHON"
    fi
}

make_venv() {
    local python=$1
    can_make_venv "$python" || add_venv_module "$python"
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "$python could not make .venv (see above)."
    printf '%s\n' "$venv" >"$venv/.place"
}

# A pip that was killed leaves packages that look installed and lack files or commands.
# Without its record a package counts as absent, and pip lays it down in full.
forget_half_installed() {
    "$venv_python" -I -S - "$venv" <<'PYTHON_CODE'
import csv, pathlib, shutil, sys

def is_whole(info):
    if not all((info / name).is_file() for name in ("METADATA", "RECORD", "INSTALLER")):
        return False
    with open(info / "RECORD", encoding="utf-8", newline="") as record:
        try:
            files = [(name, int(size or -1)) for name, _, size in csv.reader(record)]
        except (ValueError, csv.Error):
            return False
    for name, size in files:
        try:
            found = (info.parent / name).stat().st_size
        except OSError:
            if not name.endswith(".pyc"):
                return False
        else:
            if size not in (-1, found):
                return False
    return bool(files)

for folder in pathlib.Path(sys.argv[1]).glob("lib*/python*/site-packages"):
    for leftover in folder.glob("~*"):
        shutil.rmtree(leftover, ignore_errors=True)
    for info in folder.glob("*.dist-info"):
        if not info.name.startswith("pip-") and not is_whole(info):
            print("Installing again what was cut short:", info.name.split("-")[0])
            shutil.rmtree(info)
PYTHON_CODE
}

install_packages() {
    local pip=("$venv_python" -I -m pip --disable-pip-version-check --no-input install
        -qq --no-warn-script-location)
    # The project's own step brings nothing: what it needs has just been laid down.
    "${pip[@]}" -r requirements.txt -c constraints.txt </dev/null &&
        "${pip[@]}" --no-deps --no-build-isolation -e . </dev/null
}

if [ "${1:-}" = --find-python ]; then
    python=$(find_python)
    say "$python"
    exit
fi

if is_ready; then exit 0; fi

# The lock stays with pip if this script is killed and pip is not: the next run then waits.
if command -v flock >/dev/null; then
    exec 9>"$root/.venv.lock"
    if ! flock -n 9; then
        say "Another run is setting up .venv: waiting for it…"
        flock 9
    fi
    if is_ready; then exit 0; fi
fi

if [ -e "$venv" ] || [ -L "$venv" ]; then
    fault=$(venv_fault)
else
    fault="is not there"
fi
if [ -z "$fault" ]; then
    say "Bringing .venv up to date…"
else
    # Found before the old environment is touched: one that cannot be replaced stays.
    python=$(find_python)
    if [ "$fault" = "is not there" ]; then
        say "Setting up the environment in .venv (a few minutes the first time)…"
    else
        say "The environment in .venv $fault: making it anew (a few minutes)…"
    fi
    make_venv "$python"
fi
rm -f "$venv/.ready"
# Taken before the install: files that change meanwhile must not count as installed.
stamp=$(fingerprint) || fail "One of ${inputs[*]} is missing."
forget_half_installed
install_packages ||
    fail "pip could not install the packages (see above). What it did install is kept: run 'make setup' again."
printf '%s\n' "$stamp" >"$venv/.ready.new"
mv "$venv/.ready.new" "$venv/.ready"
say "Ready: .venv ($("$venv_python" -V))."
