/* The registry as a table in Markdown: that of docs/ops.md. */
#ifndef WG_CLI_OP_TABLE_H
#define WG_CLI_OP_TABLE_H

/* Prints it to stdout. */
void wg__print_op_table(void);

#endif
