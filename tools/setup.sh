#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes sure that all tools are here, once: Debian packages (as root) and a pinned Python
# environment in .venv. Quick when nothing is missing. Run from the repository's root.
set -eu

packages=""
want() { command -v "$1" >/dev/null 2>&1 || packages="$packages $2"; }
want g++ g++
want make make
want git git
want python3 python3
# Debian splits these off from python3: venv's ensurepip, and the shared library that cocotb embeds.
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages="$packages python3-venv"
    python3 - <<'PY' || packages="$packages libpython3-dev"
import ctypes, sys, sysconfig
names = [sysconfig.get_config_var(k) for k in ("INSTSONAME", "LDLIBRARY")]
folder = sysconfig.get_config_var("LIBDIR") or ""
for name in filter(lambda n: n and ".so" in n, names):
    for path in (f"{folder}/{name}", name):
        try:
            ctypes.CDLL(path)
            sys.exit(0)
        except OSError:
            pass
sys.exit(1)
PY
fi
want ghdl ghdl
want tshark tshark
# What `make bench` compares the packet back end with.
want iperf3 iperf3
# For the verbs back end: bindings to libibverbs, which itself is loaded at run time.
want cmake cmake
/sbin/ldconfig -p | grep -qE 'libclang(-[0-9]+)?\.so' || packages="$packages libclang-dev"
# The Soft-RoCE machine of tests/softroce: an emulator, and what goes into the machine.
want qemu-system-x86_64 qemu-system-x86
want busybox busybox-static
want rdma iproute2
# The virtual board's tests let the kernel ping it.
want ping iputils-ping
[ -e /etc/libibverbs.d/rxe.driver ] || packages="$packages libibverbs1 ibverbs-providers"
# The tests of the live page.
want chromium chromium
# Not needed, but it saves minutes: the benches compile Verilator's runtime again and again.
[ "$(id -u)" != 0 ] || want ccache ccache
if [ -n "$packages" ]; then
    if [ "$(id -u)" = 0 ]; then
        echo "setup: installing Debian packages:$packages"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
    else
        echo "setup: missing Debian packages. Run this once, then try again:" >&2
        echo "    sudo apt-get install -y$packages" >&2
        exit 2
    fi
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "setup: Python 3.11 or newer is needed, this is $(python3 --version 2>&1)" >&2
    exit 2
}
command -v cargo >/dev/null 2>&1 || {
    echo "setup: cargo is missing: install Rust 1.88 or newer (https://rustup.rs), then try again" >&2
    exit 2
}

wanted="$(python3 --version) $(cksum < requirements.txt) $(pwd)"
if [ "$(cat .venv/.penstock 2>/dev/null || true)" != "$wanted" ]; then
    echo "setup: Python packages into .venv"
    rm -rf .venv
    python3 -m venv .venv
    .venv/bin/pip install -q --disable-pip-version-check -r requirements.txt
    echo "$wanted" > .venv/.penstock
fi
.venv/bin/python tb/lib/toolchain.py >/dev/null
sh tools/web.sh
