"""What may be shown of a call."""


def redact(name, args, kwargs):
    return args, {key: "***" if key == "card" else value for key, value in kwargs.items()}
