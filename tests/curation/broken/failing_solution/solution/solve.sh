#!/bin/bash
echo 43 > answer.txt
ls nowhere
