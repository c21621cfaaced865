graph():
    %x : [#users=6] = placeholder[target=x]
    %getitem : [#users=1] = call_function[target=operator.getitem](args = (%x, (Ellipsis, 0)), kwargs = {})
    %getitem_1 : [#users=1] = call_function[target=operator.getitem](args = (%x, (slice(None, None, None), None, slice(1, -1, 2))), kwargs = {})
    %getitem_2 : [#users=1] = call_function[target=operator.getitem](args = (%getitem_1, 0), kwargs = {})
    %add : [#users=2] = call_function[target=operator.add](args = (%getitem, %getitem_2), kwargs = {})
    %getitem_3 : [#users=1] = call_function[target=operator.getitem](args = (%add, slice(None, None, -1)), kwargs = {})
    %getitem_4 : [#users=1] = call_function[target=operator.getitem](args = (%x, ()), kwargs = {})
    %getitem_5 : [#users=1] = call_function[target=operator.getitem](args = (%x, (0,)), kwargs = {})
    %gt : [#users=1] = call_function[target=operator.gt](args = (%x, 0), kwargs = {})
    %getitem_6 : [#users=1] = call_function[target=operator.getitem](args = (%x, %gt), kwargs = {})
    %size : [#users=1] = call_method[target=size](args = (%add, 0), kwargs = {})
    %getitem_7 : [#users=1] = call_function[target=operator.getitem](args = (%getitem_6, slice(size, None, None)), kwargs = {})
    return (getitem_3, getitem_4, getitem_5, getitem_7)
