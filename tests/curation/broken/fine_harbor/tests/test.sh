#!/bin/bash
if grep -qsx 42 answer.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
