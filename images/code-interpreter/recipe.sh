# What code-interpreter and interpreter-all have in common; here, so that it counts in the hash of both.
. ./base.sh

packages="$packages esbuild fonts-dejavu-core python3-ipykernel python3-jupyter-client python3-matplotlib \
python3-numpy python3-openpyxl python3-pandas python3-pil python3-requests \
python3-scipy python3-sympy"

extend()
{
    place=usr/lib/python3/dist-packages/warren_interpreter
    install -d "$1/$place"
    install -m 0644 code-interpreter/*.py code-interpreter/*.js code-interpreter/*.java \
        code-interpreter/shell.sh "$1/$place/"
    install -m 0755 code-interpreter/warren-interpreter "$1/usr/local/bin/warren-interpreter"
    install_node "$1" acorn@8 # reads what javascript.js is given
    chroot "$1" python3 -m compileall -q "/$place"
    # There is no display: plots go to files, and nobody has to say so.
    sed -i '/^#* *backend *:/d' "$1/etc/matplotlibrc"
    printf 'backend: Agg\n' >>"$1/etc/matplotlibrc"
    # A third of it is for those who build such packages: their tests, a compiler's headers and
    # static libraries, tables of test data.
    find "$1/usr/lib/python3/dist-packages" -type d -name tests -prune -exec rm -rf {} +
    rm -rf "$1"/usr/include/boost "$1"/usr/share/unicode/* \
        "$1"/usr/lib/gcc/*/*/lto1 "$1"/usr/lib/*/openblas-*/*.a \
        "$1"/usr/lib/python3*/config-*/*.a
}

verify="$verify
python3 -c \"import numpy, pandas, scipy, sympy, openpyxl, PIL, requests, ipykernel, jupyter_client\"
python3 -c \"import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig(\\\"/dev/null\\\", format=\\\"png\\\")\"
python3 -I -c \"import warren_interpreter.server, warren_interpreter.charts\"
python3 -m pip --version; esbuild --version
node --experimental-vm-modules --no-warnings /usr/lib/python3/dist-packages/warren_interpreter/javascript.js 3</dev/null 4>/dev/null"
