/* SPDX-License-Identifier: Apache-2.0 */
/* husk: runs the named command and returns its exit code. */
#include "base/clock.h"
#include "cli/cli.h"

int main(int argc, char **argv)
{
    clock_mark_start();
    return cli_main(argc, argv);
}
