graph():
    return (None, True, -2.5)
