#!/usr/bin/env bash
# Makes sure of a program that a target needs: `need.sh PROGRAM PACKAGE WHY`. It is installed where
# that is allowed; elsewhere one line says how to get it.
set -euo pipefail
program=$1 package=$2 why=$3
command -v "$program" >/dev/null && exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    printf 'Installing %s (%s)…\n' "$package" "$why"
    export DEBIAN_FRONTEND=noninteractive
    if { apt-get install -y -qq "$package" || { apt-get update -qq && apt-get install -y -qq "$package"; }; } >/dev/null 2>&1; then
        exit 0
    fi
fi
if command -v apt-get >/dev/null; then how="sudo apt-get install $package"
elif command -v dnf >/dev/null; then how="sudo dnf install $package"
elif command -v pacman >/dev/null; then how="sudo pacman -S $package"
else how="install the package $package"; fi
printf '%s is missing (%s): %s\n' "$program" "$why" "$how" >&2
exit 1
