graph():
    %x : [#users=4] = placeholder[target=x]
    %clamp : [#users=1] = call_function[target=torch.clamp](args = (%x, -inf, inf), kwargs = {})
    %add : [#users=1] = call_function[target=operator.add](args = (%clamp, nan), kwargs = {})
    %mul : [#users=1] = call_function[target=operator.mul](args = (1e-05, %x), kwargs = {})
    %sub : [#users=1] = call_function[target=operator.sub](args = (%add, %mul), kwargs = {})
    %add_1 : [#users=2] = call_function[target=operator.add](args = (%sub, 1e+20), kwargs = {})
    %eq : [#users=1] = call_function[target=operator.eq](args = (%add_1, 0), kwargs = {})
    %masked_fill : [#users=1] = call_method[target=masked_fill](args = (%add_1, %eq, -inf), kwargs = {})
    %pow_1 : [#users=1] = call_function[target=operator.pow](args = (-3, %x), kwargs = {})
    %floordiv : [#users=1] = call_function[target=operator.floordiv](args = (%pow_1, 7), kwargs = {})
    %add_2 : [#users=1] = call_function[target=operator.add](args = (%masked_fill, %floordiv), kwargs = {})
    %add_3 : [#users=1] = call_function[target=operator.add](args = (%add_2, 9223372036854775807), kwargs = {})
    %mul_1 : [#users=1] = call_function[target=operator.mul](args = ((1.5-2j), %x), kwargs = {})
    %add_4 : [#users=1] = call_function[target=operator.add](args = (%add_3, %mul_1), kwargs = {})
    return add_4
