#!/bin/bash
sleep 600
