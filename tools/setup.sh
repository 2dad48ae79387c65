#!/bin/sh
# Makes the virtual environment: sh tools/setup.sh [--test|--models] PYTHON VENV. Quick when nothing is missing.
set -eu
what=base
case "$1" in --test|--models) what=${1#--}; shift ;; esac
python=$1
venv=$2
here=$(dirname "$0")
stamps=$venv/.stamp
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
mkdir -p "$stamps"

install() {  # install NAME: tools/requirements-NAME.txt, once for each content of the file
  file=$here/requirements${1:+-$1}.txt
  sum=$(cksum < "$file" | tr ' ' _)
  [ -e "$stamps/pip${1:+-$1}.$sum" ] && return 0
  echo "installing ${1:-the build environment} (pip) …"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$file"
  touch "$stamps/pip${1:+-$1}.$sum"
}

plugins() {  # without their dependencies: one of them asks for JAX, which is not needed
  for p in fastatomstruct-xla-cpu xla-cpu-pjrt==0.0.1; do
    [ -e "$stamps/plugin.$p" ] && continue
    echo "installing $p (pip) …"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$p"
    touch "$stamps/plugin.$p"
  done
}

install ""
plugins
case $what in
  test)
    install test
    install models
    for p in lammps-jax-pjrt-cpu libtpu==0.0.51; do
      [ -e "$stamps/plugin.$p" ] && continue
      echo "installing $p (pip) …"
      "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$p"
      touch "$stamps/plugin.$p"
    done
    if ! [ -e /usr/include/cmocka.h ]; then
      echo "installing libcmocka-dev (apt) …"
      { apt-get install -y -qq libcmocka-dev || { apt-get update -qq && apt-get install -y -qq libcmocka-dev; }; } >/dev/null 2>&1 ||
        echo "libcmocka-dev could not be installed: the C tests need it"
    fi ;;
  models) install models ;;
esac
