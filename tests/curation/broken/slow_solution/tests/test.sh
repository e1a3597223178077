#!/bin/bash
tests=0 passed=0 entries=
check() { # check NAME COMMAND...: one assertion
    local name=$1 status=failed
    shift
    if "$@"; then status=passed passed=$((passed + 1)); fi
    tests=$((tests + 1)) entries+=",{\"name\": \"$name\", \"status\": \"$status\", \"duration\": 0}"
}

check "answer.txt is there" test -f answer.txt
check "answer.txt holds 42" grep -qsx 42 answer.txt

cat > /logs/verifier/ctrf.json <<END
{"results": {"tool": {"name": "bash"}, "summary": {"tests": $tests, "passed": $passed, "failed": $((tests - passed))},
"tests": [${entries:1}]}}
END
