#!/bin/bash
echo "VALUE = 42" > answer.py
touch answer.txt
