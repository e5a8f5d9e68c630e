// SPDX-License-Identifier: Apache-2.0
// A program without a loader, which LD_PRELOAD does not reach.
int main() {
  return 3;
}
