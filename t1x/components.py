"""Imports every module that declares components, so that the registry knows them. Imports nothing heavy."""
