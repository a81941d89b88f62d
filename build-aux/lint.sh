# ./dev lint: what a reviewer should not have to look for.

step "Include arrows" build-aux/arrows
step "Formatting" sh -c "find src fuzz bench -name '*.[ch]' | xargs -r clang-format --dry-run --Werror"
build build-gcc -Dwerror=true
CC=clang build build-clang -Dwerror=true
step "clang-tidy" sh -c "find src -name '*.c' | xargs -r -P 2 -n 4 clang-tidy --quiet -p build-clang"
step "cppcheck" cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr -Isrc \
    --enable=warning,performance,portability --suppressions-list=build-aux/cppcheck.txt src
say "-- Nothing to say"
