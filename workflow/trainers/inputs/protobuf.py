"""As much of Protocol Buffers' wire format as records of features need."""


def fields(message):
    """The fields of a message, (number, bytes or integer), whose numbers are below 16."""
    at, end = 0, len(message)
    while at < end:
        key, value = message[at], message[at + 1]
        at += 2
        if value & 0x80:
            value, at = varint(message, at - 1)
        if key & 7 == 2:  # the value is a length
            value, at = message[at : at + value], at + value
        yield key >> 3, value


def varint(message, at):
    """The number that begins at a byte, and where what follows it begins."""
    value = shift = 0
    while message[at] & 0x80:
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | message[at] << shift, at + 1
