package main

// The modes and owners of files are a matter of the other systems; nothing starts these here.

func fakeVaultModes() {}

func fakeVaultLocked() {}

func fakeVaultLimited() {}
