#!/bin/bash
kill -SEGV $$
