# code-interpreter-all - code-interpreter with the languages that take most room: R and Java.
. ./code-interpreter.sh
parent=code-interpreter

packages="$packages openjdk-17-jdk-headless r-cran-irkernel"

verify="$verify
java -version; R --slave -e \"library(IRkernel)\""
