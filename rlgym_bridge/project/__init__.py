"""Projects of bot makers: begin one."""
