# interpreter-all - code-interpreter with the languages that take most room: R and Java. Its
# directory is the other's.
. ./code-interpreter/recipe.sh

packages="$packages openjdk-17-jdk-headless r-cran-irkernel"

# Java's installation links manual pages, and fails where there is no directory of them.
dpkg_options="$dpkg_options path-include=/usr/share/man/man1/bash.1.gz"

verify="$verify
java -version; R --slave -e \"library(IRkernel)\""
