"""Play scripted scenes on a server, with two cars or with a bot, and judge what comes of them."""
