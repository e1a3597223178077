#!/bin/bash
mkdir -p /app
