#!/bin/bash
exec python3 -c 'raise RuntimeError("no such column")'
