// swift-sodium's binary has libsodium's own headers: those of the machine stand for them here.
#pragma once
#include <sodium.h>
