graph():
    %x : [#users=2] = placeholder[target=x]
    %relu : [#users=1] = call_method[target=relu](args = (%x,), kwargs = {})
    %getitem : [#users=1] = call_function[target=operator.getitem](args = (%x, slice(1, None, None)), kwargs = {})
    %point : [#users=1] = call_function[target=fx_syntax.Point](args = (%relu, %getitem), kwargs = {})
    return point
