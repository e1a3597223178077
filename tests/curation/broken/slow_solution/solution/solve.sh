#!/bin/bash
sleep 60
