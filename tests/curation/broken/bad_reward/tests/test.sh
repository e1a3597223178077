#!/bin/bash
if grep -qsx 42 answer.txt; then echo nan; else echo nan; fi > /logs/verifier/reward.txt
