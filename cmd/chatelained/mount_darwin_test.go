package main_test

import "errors"

func mountSmall(string) error { return errors.New("no tmpfs here") }
